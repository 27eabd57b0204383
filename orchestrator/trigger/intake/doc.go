// Package intake takes in what triggers bring and makes tasks of it.
//
//	Receive    a webhook's call: who sent it, stored, a task
//	Run        what is stored and has no task yet, the times of schedules, retention
//	Redeliver  a delivery once more, as the trigger stands today
//	Try        what a trigger would make of a sample; nothing is stored
//
// A delivery is a row before it is a task, and its task has a key that is made of the
// row: a crash in between loses nothing, and whoever takes the row up again gets the
// task that is there. A row is taken up under a lease, so two nodes never work on one.
//
//	          ┌─ task made, or its key was used ─▶ started
//	stored ───┼─ condition not met ──────────────▶ filtered
//	  ▲  │    ├─ unreadable, or the engine says no ▶ refused
//	  │  │    ├─ the task before lives, or too late ▶ skipped
//	  └──┴────┴─ given up after the last try ────▶ failed
//	 later: the engine could not just now
//
// The room is the engine's: it may import orchestrator and its leaves.
package intake
