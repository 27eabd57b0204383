package placetest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
)

// Signed makes a request a delivery of GitHub's.
func Signed(req *http.Request, id string, body []byte) {
	m := hmac.New(sha256.New, []byte("It's a Secret to Everybody"))
	m.Write(body)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(m.Sum(nil)))
	req.Header.Set("X-GitHub-Delivery", id)
	req.Header.Set("X-GitHub-Event", "workflow_run")
}
