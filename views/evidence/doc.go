// Package evidence draws the document that says of one request who asked, what was shown
// to whom, who decided and what came of it. It is printed and kept.
//
// It may import views and what views may, and no other pages.
package evidence
