"""Draft trees and the channel limit."""
