package inbox_test

import (
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/approvaltest"
	"gatehouse/approval/inbox"
)

func TestTheInboxIsAChannel(t *testing.T) {
	approvaltest.Channel(t, func(*testing.T) approval.Channel { return inbox.Channel{} })
}
