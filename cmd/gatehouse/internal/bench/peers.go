package bench

// What others need for the same work, measured on 2 cores and 24 GiB with PostgreSQL 15 and
// Node 20: LangGraph.js 1.2.9 with its own checkpointers for each database, and
// open-multi-agent 1.16.1, which stores nothing. The chain is three agents and five model
// calls that answer at once. They are sizes for comparison; another machine gives others.
const (
	LangGraphSQLite      = 60     // chains/s, one at once
	LangGraphPostgres    = 35     // chains/s, sixteen at once
	OpenMultiAgentMemory = 797    // chains/s, sixteen at once, nothing durable
	LangGraphParkedLite  = 18_300 // bytes of a run that waits for a person, SQLite
	LangGraphParkedPg    = 22_200 // … PostgreSQL
)
