package api

import (
	"testing"
	"time"

	"gatehouse/orchestrator"
)

// A10: each state has one of the four words, and no other.
func TestStatesInTheWordsOfTheSource(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		state   orchestrator.State
		started *time.Time
		want    string
	}{
		{orchestrator.Queued, nil, "notice"}, {orchestrator.Queued, &now, "ack"}, {orchestrator.Running, &now, "ack"},
		{orchestrator.Waiting, &now, "ack"}, {orchestrator.AwaitingApproval, &now, "ack"}, {orchestrator.Landing, &now, "ack"},
		{orchestrator.Completed, &now, "complete"}, {orchestrator.Failed, &now, "fail"}, {orchestrator.Cancelled, &now, "fail"},
		{orchestrator.Rejected, &now, "fail"}, {orchestrator.Expired, &now, "fail"},
	} {
		if got := statusOf(orchestrator.Delegation{State: c.state, StartedAt: c.started}); got != c.want {
			t.Errorf("%s is %q, want %q", c.state, got, c.want)
		}
	}
}
