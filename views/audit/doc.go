// Package audit draws the history with its filters, its export, its proof, and the holds
// that keep retention from removing things.
//
// It may import views and what views may, and no other pages.
package audit
