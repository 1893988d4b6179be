"""Readers of data files, strict and streaming."""
