// Package task draws tasks and their delegations: the list, the tree with its times, one
// delegation with its conversation, the flow, and what stops work.
//
// It may import views, views/figures and what views may, and no other pages.
package task
