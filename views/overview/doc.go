// Package overview draws the first page, the figures of all days, and who waits for whom.
//
// It may import views, views/figures and what views may, and no other pages.
package overview
