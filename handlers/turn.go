package handlers

import (
	"encoding/json"
	"fmt"
	"strconv"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
)

// RunOf reads ?run=, which counts from 1; absent it is the newest. Runs before a retry or
// before a new revision have conversations of their own.
func RunOf(s string, newest int) (int, error) {
	if s == "" {
		return newest, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > newest+1 {
		return 0, Refuse(orchestrator.CodeBadRequest, fmt.Sprintf("There is no run %.20q. Runs count from 1, and the newest is %d.", s, newest+1))
	}
	return n - 1, nil
}

// Thinking is what a model thought before it spoke, where its provider tells; else "".
func Thinking(b agent.Block) string {
	var data struct {
		Thinking string `json:"thinking"`
	}
	if b.Type != agent.OpaqueBlock || json.Unmarshal(b.Opaque, &data) != nil {
		return ""
	}
	return data.Thinking
}
