// Package handlers has what pages, the API and streams share: the frame of a page
// (site.go), what they need of the rest as small interfaces (ports.go), who asks and what
// they may (who.go, right.go), faults and their statuses, short forms of ids (ids.go), and
// rows, filter lines and waits that several subjects show.
//
// The pages stand in rooms by subject: overview, task, review, evidence, audit, chat, team,
// settings and signin; change reads and draws diffs for two of them. The others answer
// programs: api (JSON), stream (SSE and WebSocket), hook (webhooks) and metrics.
//
// It may import the domain's values, approval and views, and none of its rooms. They import
// it and never each other; web mounts them and knows their routes.
package handlers
