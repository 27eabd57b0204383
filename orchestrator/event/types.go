package event

// Types lists every type that the log of a task may have, as filters offer them and open
// pages listen for them. MessageDelta and Gap are never stored and not among them.
func Types() []Type {
	return []Type{
		TaskCreated, Queued, Acknowledged, Progress, Delegated, DelegationRefused, Waiting, Resumed, Completed, Failed, Cancelled, MessageCompleted,
		ToolCompleted, Paused, Unpaused, Forked, Announced, UsageRecorded, ContextRead, ContextDeleted, ContextWritten, Requested, Notified, Decided,
		ChangesRequested, Superseded, Expired, Stale, Reminded, Escalated, CommentReplied, CommentResolved, CommentReopened, VerdictRefused,
		WithdrawnRight, Overtaken, PatchRejected, PatchValidated, PatchLanded, PatchReverted, BreakerOpened, BreakerClosed,
	}
}
