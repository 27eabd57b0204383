package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/history"
	"gatehouse/orchestrator/store"
)

// hasty is the time from opening a page to a yes below which nobody has read it.
const hasty = 10 * time.Second

// sortBatch is how many requests of before are made findable in one transaction.
const sortBatch = 200

// facets collects what r is found by.
type facets struct{ store.Facets }

func (f *facets) when(holds bool, key history.Key, value string) {
	if holds {
		f.Add(key, value)
	}
}

// facetsOf is everything that r is found by, but for its codes, which the log brings.
func facetsOf(r *approval.Request) facets {
	var f facets
	f.Add(history.State, string(r.State))
	f.Add(history.Agent, r.Agent)
	f.Add(history.Repository, r.Repository)
	f.Add(history.Requester, r.Requester)
	f.Add(history.Via, r.Via.String())
	if r.Via.Trigger() != "" {
		f.Add(history.Via, string(r.Via.Kind)) // "webhook ci-failed" is found by either
	}
	f.Add(history.Rule, r.Rule.Name)
	for _, d := range r.Decisions {
		f.Add(history.Approver, d.User)
		f.Add(history.Channel, string(d.Channel))
	}
	f.when(r.State == approval.Landed, history.Is, "landed")
	f.when(r.State == approval.Rejected, history.Is, "refused")
	f.when(r.State == approval.Expired, history.Is, "expired")
	f.when(r.State == approval.Reverted, history.Is, "reverted")
	f.when(r.RevertOf != "", history.Is, "revert")
	f.when(r.Revision.Made == approval.MadeByEdit, history.Is, "edited")
	f.when(!r.IsPatch(), history.Is, string(r.Kind))
	if r.State == approval.Approved || r.State == approval.Landed || r.State == approval.Reverted {
		f.approved(r)
	}
	return f
}

// approved adds how the yes to r came about.
func (f *facets) approved(r *approval.Request) {
	byRule, people := false, 0
	alone, unread, fast, slow := false, false, false, false
	for _, d := range r.Yes() {
		if d.OfRule() {
			byRule = true
			continue
		}
		people++
		alone = alone || hasPart(r, d)
		unread = unread || !d.Seen.All(len(r.Revision.Files))
		if d.Seen.OpenedAt != nil {
			quick := d.At.Sub(*d.Seen.OpenedAt) < hasty
			fast, slow = fast || quick, slow || !quick
		}
	}
	f.when(byRule, history.Is, "auto")
	f.when(people > 0 && alone, history.FourEyes, "no")
	f.when(people > 0 && !alone, history.FourEyes, "yes")
	f.when(people > 0 && unread, history.Viewed, "no")
	f.when(people > 0 && !unread, history.Viewed, "yes")
	f.when(fast, history.Fast, "yes")
	f.when(slow && !fast, history.Fast, "no")
	f.when(len(r.Revision.Warnings) > 0, history.Warnings, "overruled")
	for _, c := range r.Revision.Checks {
		f.when(!c.OK, history.Checks, "overruled")
	}
}

// hasPart reports whether whoever decided asked for r or made a part of it.
func hasPart(r *approval.Request, d approval.Decision) bool {
	is := func(id, name string) bool {
		if id != "" && d.UserID != "" {
			return id == d.UserID
		}
		return name != "" && strings.EqualFold(name, d.User)
	}
	parties := r.Lineage
	if r.Revision.Editor != nil {
		parties = append(slices.Clone(parties), *r.Revision.Editor)
	}
	for i := range parties {
		for p := &parties[i]; p != nil; p = p.Before {
			if is(p.UserID, p.User) {
				return true
			}
		}
	}
	return is(r.RequesterID, r.Requester)
}

// plain are the facets that are no remark: most requests have one of them.
var plain = []string{string(history.FourEyes) + ":yes", string(history.Viewed) + ":yes", string(history.Fast) + ":no", string(history.Is) + ":landed"}

// flags are the ready questions that the facets answer.
func (f facets) flags() []string {
	out := []string{}
	for _, one := range f.Facets {
		switch one.Key {
		case history.FourEyes, history.Viewed, history.Fast, history.Warnings, history.Checks, history.Is:
			if flag := string(one.Key) + ":" + one.Value; !slices.Contains(plain, flag) {
				out = append(out, flag)
			}
		}
	}
	return out
}

// rowOf is r as the list shows it, but for the money, which its task goes on spending.
func rowOf(r *approval.Request, f facets) history.Row {
	row := history.Row{ID: r.ID, TaskID: r.TaskID, At: r.CreatedAt, Title: r.Title, State: string(r.State), Requester: r.Requester, Via: r.Via, Agent: r.Agent,
		Chain: r.Chain, Repository: r.Repository, Target: r.Revision.Base.Branch, Rule: r.Rule.Name, Need: r.Rule.Need, Files: len(r.Revision.Files),
		Added: r.Revision.Added, Removed: r.Revision.Removed, Warnings: []string{}, Flags: f.flags(), Deciders: []history.Decider{}, DecidedAt: r.DecidedAt, Landed: r.Landed, Read: r.HowRead()}
	if d := r.Revision.Delivery(); r.Landed != "" && d.Pushes() {
		row.Pushed = d.Branch
	}
	for _, w := range r.Revision.Warnings {
		if !slices.Contains(row.Warnings, string(w.Code)) {
			row.Warnings = append(row.Warnings, string(w.Code))
		}
	}
	for _, d := range r.Decisions {
		row.Deciders = append(row.Deciders, history.Decider{Name: d.User, Channel: d.Channel, Verdict: string(d.Verdict), At: d.At})
	}
	return row
}

// History is ListRequests with who has read each change.
func (s *Store) History(ctx context.Context, q history.Query, after string, limit int) (history.Page, error) {
	page, err := s.ListRequests(ctx, q, after, limit)
	if err != nil {
		return page, err
	}
	return page, s.alsoRead(ctx, page.Rows)
}

// alsoRead puts onto rows who read the change without a verdict: that is no event, so the
// rows are not written anew for it.
func (s *Store) alsoRead(ctx context.Context, rows []history.Row) error {
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	looks, err := s.Looks(ctx, ids)
	if err != nil {
		return err
	}
	of := map[string][]approval.Look{}
	for _, l := range looks {
		of[l.RequestID] = append(of[l.RequestID], l)
	}
	for i, r := range rows {
		rows[i].Read = approval.AlsoRead(r.Read, r.Files, of[r.ID])
	}
	return nil
}

// touch notes that the commit has to make the request findable as it is then.
func (t *Tx) touch(id string) {
	t.Wrote()
	if !slices.Contains(t.touched, id) {
		t.touched = append(t.touched, id)
	}
}

// list makes what this transaction changed findable, before its commit.
func (t *Tx) list() error {
	for _, id := range t.touched {
		r, err := scanRequest(t.Row(selectRequest+" where r.id = ?", id))
		if err == nil {
			err = listRequest(t.Tx, r, t.Task().Text)
		}
		if err != nil {
			return fmt.Errorf("list request %s: %w", id, err)
		}
	}
	return nil
}

// listRequest makes r findable as it is now: by its task's text, too.
func listRequest(t *store.Tx, r approval.Request, task string) error {
	var err error
	if r.Decisions, err = decisionsOf(t, r.ID); err != nil {
		return err
	}
	rows, err := t.Query("select text from revisions where request_id = ? order by n", r.ID)
	answers, err := store.Collect(rows, err, store.Scalar[string])
	if err != nil {
		return err
	}
	return t.List(listedOf(&r, task, answers))
}

func listedOf(r *approval.Request, task string, answers []string) store.Listed {
	f := facetsOf(r)
	return store.Listed{Row: rowOf(r, f), Facets: f.Facets, Texts: textsOf(r, task, answers)}
}

// listedNew is what a request is listed by that is about to be inserted with its first
// revision: as listRequest would read it.
func listedNew(r *approval.Request, task string) store.Listed {
	as := *r
	as.CreatedAt, as.DecidedAt, as.Decisions = store.FromMicros(store.Micros(r.CreatedAt)), store.FromNull(store.NullMicros(r.DecidedAt)), nil
	as.Via, as.Chain = origin.Parse(r.Via.String()), chain.ParseNames(r.Chain.String())
	return listedOf(&as, task, []string{store.Clean(r.Revision.Text)})
}

// textsOf is what is searched: the task, the title, the answers, the comments.
func textsOf(r *approval.Request, task string, answers []string) []string {
	texts := []string{task}
	if !strings.Contains(task, r.Title) {
		texts = append(texts, r.Title)
	}
	texts = append(texts, answers...)
	for _, d := range r.Decisions {
		texts = append(texts, d.Comment)
		for _, c := range d.Comments {
			texts = append(texts, c.Text)
		}
	}
	return texts
}

// listOld makes requests findable that an older program wrote, newest first. It is quick
// where there are none, and may run on several nodes at once.
func (s *Store) listOld(ctx context.Context) error {
	for {
		some, err := store.ReadAll(ctx, s.Store, func(row store.Scanner) (r approval.Request, err error) {
			err = row.Scan(&r.ID, &r.TaskID, &r.DelegationID)
			return r, err
		}, "select id, task_id, delegation_id from requests where facets = '' order by id desc limit ?", sortBatch)
		if err != nil || len(some) == 0 {
			return err
		}
		// In the order of their tasks, whose rows are locked: two nodes cannot block each other.
		slices.SortFunc(some, func(a, b approval.Request) int { return strings.Compare(a.TaskID, b.TaskID) })
		if err := s.Transact(ctx, func(t *store.Tx) error {
			for _, r := range some {
				if err := s.listOne(t, r); err != nil {
					return fmt.Errorf("make request %s findable: %w", r.ID, err)
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
}

// listOne makes one request findable that is in no list yet.
func (s *Store) listOne(t *store.Tx, old approval.Request) error {
	task, err := store.Scalar[string](t.Row("select text from tasks where id = ?"+s.ForUpdate(), old.TaskID))
	if err != nil {
		return err
	}
	if err := t.ListCodes(old.ID, old.DelegationID); err != nil {
		return err
	}
	r, err := scanRequest(t.Row(selectRequest+" where r.id = ?", old.ID))
	if err != nil {
		return err
	}
	return listRequest(t, r, task)
}
