package patch

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Digest names what a decision is made on: 64 lower-case hex digits of sha256
// over the five values. Each is preceded by its length, so that no two
// different patches share an encoding.
func Digest(repository, branch, baseCommit, tree, delivery string) string {
	if delivery == "" {
		delivery = DeliverMerge
	}
	h := sha256.New()
	for _, s := range []string{"gatehouse patch 1", repository, branch, baseCommit, tree, delivery} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	return hex.EncodeToString(h.Sum(nil))
}
