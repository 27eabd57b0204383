// Package settings draws what a person or an admin sets: accounts, tokens, people,
// channels, and the policy and configuration in force.
//
// It may import views and what views may, and no other pages.
package settings
