"""Loading of frozen backbones from a folder or hub name: files, tokenisers, images and audio."""
