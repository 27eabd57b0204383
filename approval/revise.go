package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// Reviser reads a revision's files and makes trees of them, by git; the engine is
// one. What cannot be made is an *orchestrator.Error.
type Reviser interface {
	// SelectFiles makes the tree in which only these paths are changed.
	SelectFiles(ctx context.Context, delegationID string, o orchestrator.Order, paths []string) (orchestrator.Revised, error)
	// EditFiles makes the tree that a person edited: files with new texts, or a diff.
	EditFiles(ctx context.Context, delegationID string, o orchestrator.Order, edits []patch.FileEdit, diff, editor string) (orchestrator.Revised, error)
	// ReadFile reads a file of the result, or of its base.
	ReadFile(ctx context.Context, delegationID string, o orchestrator.Order, base bool, path string, max int64) (content []byte, found bool, err error)
}

// SetReviser says who makes revisions and reads files; the engine needs the gateway first.
func (g *Gateway) SetReviser(v Reviser) { g.reviser.Store(&v) }

// NoteAskedAgain is the code of the note that says why the yes that made a revision
// does not count on it.
const NoteAskedAgain = "asked_again"

// remade is a tree that a verdict makes, with what is kept of how.
type remade struct {
	tree orchestrator.Revised
	made orchestrator.Made
}

// remake makes the tree that a ballot asks for, nil for one that asks for none. A
// choice of all files is a plain yes.
func (g *Gateway) remake(ctx context.Context, r Request, b *Ballot) (*remade, error) {
	if !r.IsPatch() || b.Verdict != Edit && (b.Verdict != Approve || b.Files == nil) {
		return nil, nil
	}
	v := g.reviser.Load()
	if v == nil {
		return nil, orchestrator.Errorf(orchestrator.CodeUnavailable, "This server makes no revisions. Request changes, and say what should be different.")
	}
	m := &remade{made: orchestrator.Made{How: MadeByEdit, From: r.Revision.N}}
	var err error
	if b.Verdict == Edit {
		m.tree, err = (*v).EditFiles(ctx, r.DelegationID, r.order(nil), b.Edits, b.Patch, b.Principal.User.Name)
		return m, unmade(err)
	}
	paths, declined, refused := r.choose(b.Files)
	if refused != nil {
		return nil, refused
	}
	if len(declined) == 0 {
		b.Files = nil
		return nil, nil
	}
	m.made.How, m.made.Declined = MadeByFiles, declined
	m.tree, err = (*v).SelectFiles(ctx, r.DelegationID, r.order(nil), paths)
	return m, unmade(err)
}

// unmade says that nothing was stored, where git failed for a reason of its own.
func unmade(err error) error {
	if known := new(orchestrator.Error); err == nil || errors.As(err, &known) {
		return err
	}
	return orchestrator.Errorf(orchestrator.CodeUnavailable, "The new revision could not be made, so nothing was stored. Try again. (%w)", err)
}

// choose turns the chosen files of the current revision into the paths to take, both
// of a rename, and lists the files that are left out.
func (r *Request) choose(files []string) (paths, declined []string, refused *orchestrator.Error) {
	if len(files) == 0 {
		return nil, nil, orchestrator.Errorf(orchestrator.CodeBadRequest, "No file is chosen. Name the files to approve, or reject the change.")
	}
	wanted := map[string]bool{}
	for _, f := range files {
		wanted[f] = true
	}
	for _, f := range r.Revision.Files {
		renamed := f.Status == patch.Renamed && f.OldPath != ""
		if !wanted[f.Path] && (!renamed || !wanted[f.OldPath]) {
			declined = append(declined, f.Path)
			continue
		}
		paths = append(paths, f.Path)
		delete(wanted, f.Path)
		if renamed {
			paths = append(paths, f.OldPath)
			delete(wanted, f.OldPath)
		}
	}
	for _, f := range files {
		if wanted[f] {
			return nil, nil, orchestrator.Errorf(orchestrator.CodeBadRequest, "%q is not among the %d changed %s of revision %d. Nothing was stored.", f, len(r.Revision.Files), plural(len(r.Revision.Files), "file", "files"), r.Revision.N)
		}
	}
	return paths, declined, nil
}

// revise ends the current revision by a verdict that makes the next one, whose tree is
// checked before people are asked about it.
func revise(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation, dec Decision, m remade) error {
	r.end(Superseded, tx.Now())
	if err := tx.SaveRequest(ctx, r); err != nil {
		return err
	}
	err := record(ctx, tx, r, dec, func(v event.Verdict) event.Payload {
		return event.DecidedData{Verdict: v, Made: m.made.How, Declined: m.made.Declined}
	})
	if err != nil {
		return err
	}
	next := event.SupersededData{About: r.about(), By: r.Revision.N + 1, Made: m.made.How}
	if err := tx.Append(ctx, r.event(dec.User, next)); err != nil {
		return err
	}
	made := m.made
	if d.Work.Made != nil {
		made.Editors = slices.Clone(d.Work.Made.Editors)
	}
	if dec.Verdict == Edit {
		made.Editors = append(made.Editors, orchestrator.Editor{ID: dec.UserID, Name: dec.User})
	} else {
		made.Yes = dec.ID
	}
	return orchestrator.Revise(ctx, tx, d, m.tree, made, dec.User)
}

func (v *Revision) madeBy(m *orchestrator.Made) {
	if m == nil {
		return
	}
	v.Made, v.MadeFrom, v.Declined = m.How, m.From, m.Declined
	for _, e := range m.Editors {
		v.Editor = &Party{UserID: e.ID, User: e.Name, Part: EditedIt, Before: v.Editor}
	}
}

// carried is the yes that made the current revision of r, to be counted on it, too.
// It is nil, with a note on the revision where somebody should know why, when the
// person may not say yes any more or would see what was, the revision before, without.
func carried(e Electorate, r *Request, was Revision, m *orchestrator.Made, now time.Time, zone *time.Location) *Decision {
	if m == nil || m.Yes == "" {
		return nil
	}
	i := slices.IndexFunc(r.Decisions, func(d Decision) bool { return d.ID == m.Yes })
	if i < 0 {
		return nil
	}
	yes := r.Decisions[i]
	again := func(format string, args ...any) *Decision {
		text := fmt.Sprintf("%s approved these files of revision %d and is asked again: ", yes.User, m.From) + fmt.Sprintf(format, args...)
		r.Revision.Notes = policy.AddNotes(r.Revision.Notes, []patch.Note{{Code: NoteAskedAgain, Text: text}})
		return nil
	}
	if fresh := brought(was, r.Revision); len(fresh) > 0 {
		return again("without the other files there is %s.", strings.Join(fresh, ", "))
	}
	u := slices.IndexFunc(e.users, func(u people.User) bool { return u.ID == yes.UserID })
	if u < 0 {
		return again("there is no such person any more.")
	}
	b := Ballot{RequestID: r.ID, Principal: people.As(e.users[u], nil), Channel: yes.Channel, Verdict: Approve, Digest: r.Revision.Digest, Revision: r.Revision.N, Seen: yes.Seen}
	if refused := judge(e, *r, b, now, zone); refused != nil {
		return again("%s", refused.Message)
	}
	yes.Seen.WarningsTicked = ticked(*r, b)
	yes.ID, yes.Revision, yes.Digest, yes.At = orchestrator.NewID(orchestrator.DecisionPrefix, now), r.Revision.N, r.Revision.Digest, r.after(now)
	yes.ForID, yes.For = e.at(now, zone).inPlaceOf(e.users[u], *r) // the seat may be another one by now
	yes.Comment, yes.Files = fmt.Sprintf("approved these files of revision %d", m.From), nil
	yes.Comments = nil // they stand with the yes that they came with
	return &yes
}

// brought names the warnings and failed checks of a revision that the one before did
// not have.
func brought(was, is Revision) []string {
	var fresh []string
	for _, w := range is.Warnings {
		had := slices.ContainsFunc(was.Warnings, func(o patch.Warning) bool { return o.Code == w.Code && o.Path == w.Path })
		if had || w.Code == "checks_failed" {
			continue
		}
		what := "the warning " + w.Code
		if w.Path != "" {
			what += " for " + w.Path
		}
		fresh = appendOnce(fresh, what)
	}
	for _, c := range is.Checks {
		had := slices.ContainsFunc(was.Checks, func(o orchestrator.Check) bool { return !o.OK && o.Command == c.Command })
		if !c.OK && !had {
			fresh = appendOnce(fresh, "a check that fails now: "+c.Command)
		}
	}
	return fresh
}

// count records a yes that was carried over, on a request that was just asked.
func count(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation, yes Decision, e Electorate) error {
	if err := approve(ctx, tx, r, d, yes, e); err != nil || r.State == Approved {
		return err
	}
	return orchestrator.AwaitApproval(ctx, tx, d, r.ID)
}

// revising answers a verdict on a revision of which a person has made the next one,
// while that is still checked.
func (w words) revising(r Request, v Verdict) *orchestrator.Error {
	what := ""
	for _, d := range r.Decisions {
		if d.Revision == r.Revision.N && (d.Verdict == Edit || len(d.Files) > 0) {
			what = w.did(d) + " "
		}
	}
	return orchestrator.Errorf(orchestrator.CodeSuperseded, "%sRevision %d is made of it and is being checked. Your %s was not counted. Decide on %d once it is asked.",
		what, r.Revision.N+1, noun(v), r.Revision.N+1)
}
