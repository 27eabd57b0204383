package views

import "gatehouse/orchestrator/sharedctx"

// UseWords say what somebody did with a value of the shared context.
var UseWords = map[sharedctx.Kind]string{"read": "read it", "write": "wrote it", "touch": "let it live longer", "delete": "deleted it"}
