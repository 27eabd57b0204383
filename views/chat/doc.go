// Package chat draws the conversation of a person with the team, with cards to decide on.
//
// It may import views, views/diff and what views may, and no other pages.
package chat
