// Package change reads a revision's change from git and makes of it the rows that pages
// draw: files, hunks, and lines that a reader opened. Reviews and cards of the chat use it.
//
// It may import handlers, views/diff and what handlers may, and no pages.
package change
