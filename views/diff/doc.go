// Package diff is a changed file as pages draw it: hunks, lines with their colours and
// marks, and the comments that stand on them. Reviews and cards of the chat show it.
//
// It may import views and what views may, and no pages.
package diff
