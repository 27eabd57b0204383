// Package flow draws who handed what to whom: boxes are agents, arrows are hand-overs (H30).
// Merge counts arrows that say the same, Lay puts boxes into layers below their callers and
// routes the arrows. The same arrows give the same drawing, whatever their number.
//
// The room imports only the standard library.
package flow
