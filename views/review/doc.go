// Package review draws approval requests: the list, and the page on which one is decided
// with its change, its comments and its verdict.
//
// It may import views, views/diff and what views may, and no other pages.
package review
