package chat_test

import (
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/approvaltest"
	"gatehouse/approval/chat"
)

func TestTheChatIsAChannel(t *testing.T) {
	approvaltest.Channel(t, func(*testing.T) approval.Channel { return chat.Channel{} })
}
