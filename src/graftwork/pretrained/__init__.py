"""From a folder or hub name to a frozen backbone: files, tokenisers, images and audio."""
