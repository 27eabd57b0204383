package sqlstore

// The texts whose plans are checked.
const (
	SelectLines = selectLines
	DeadNotices = deadNotices
	DigestsDue  = "select 1" + digestsDue + " = ''"
	LiveWork    = selectLiveWork
	ReportsDue  = "select 1" + reportsDue + " is null"
	CardsDue    = "select 1" + cardsDue + " and " + wasShown + " and channel in (?)"
)

// OverdueQuery is the query of the look for deadlines that have come.
func (s *Store) OverdueQuery() string { return s.selectOverdue() }
