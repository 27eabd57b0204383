// Package team draws what the team has: its agents, its triggers and its shared context.
//
// It may import views and what views may, and no other pages.
package team
