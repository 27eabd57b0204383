// Package metrics tells Prometheus what the store and this node know.
//
// It may import handlers and what handlers may, and no pages.
package metrics
