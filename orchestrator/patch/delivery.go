package patch

// Delivery is what a yes does with a change: it lands on Target, or the agent's Branch is
// pushed for people to merge by hand. Every face takes its words from here.
type Delivery struct {
	Mode   string // DeliverMerge (also when empty) or DeliverBranch
	Target string
	Branch string
}

// Pushes reports whether the change is pushed as a branch, and Target stays as it is.
func (d Delivery) Pushes() bool { return d.Mode == DeliverBranch }

// To is the branch on which the commit is afterwards.
func (d Delivery) To() string {
	if d.Pushes() {
		return d.Branch
	}
	return d.Target
}

// As is d with its names as a surface shows them.
func (d Delivery) As(shown func(string) string) Delivery {
	return Delivery{d.Mode, shown(d.Target), shown(d.Branch)}
}

// Done is "landed on main" or "pushed to gatehouse/coder-…".
func (d Delivery) Done() string {
	if d.Pushes() {
		return "pushed to " + d.Branch
	}
	if d.Target == "" {
		return "landed"
	}
	return "landed on " + d.Target
}

// Doing is "landing on main" or "being pushed to gatehouse/coder-…".
func (d Delivery) Doing() string {
	if d.Pushes() {
		return "being pushed to " + d.Branch
	}
	return "landing on " + d.Target
}
