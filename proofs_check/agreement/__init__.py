"""Algorithms, their twins and the library side by side: the comparisons of statements about paths and lists."""
