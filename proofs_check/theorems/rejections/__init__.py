"""Rejections and bias."""
