package passive_test

import (
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/approvaltest"
	"gatehouse/approval/passive"
)

func TestThePagesAreChannels(t *testing.T) {
	for _, channel := range []passive.Channel{passive.Inbox, passive.Chat} {
		t.Run(string(channel), func(t *testing.T) {
			approvaltest.Channel(t, func(*testing.T) approval.Channel { return channel })
		})
	}
}
