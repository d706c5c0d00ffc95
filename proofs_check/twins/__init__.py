"""Formulas again by another route: at 50 digits, as recursions in fractions, by trying every tree or list."""
