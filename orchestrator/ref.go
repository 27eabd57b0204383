package orchestrator

import (
	"context"
	"errors"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/patch"
)

// refLook is how long a new task waits for the source to say whether it has a ref.
const refLook = 5 * time.Second

// checkRef refuses a ref that is no name of a branch or tag, and one that the task's
// repository does not have. Where the source cannot be reached the task is taken: its
// run fails with a sentence when there is no such ref after all, and no task is lost
// because the place where the code lives was away for a minute.
func (e *Engine) checkRef(ctx context.Context, s Submission, repository string) error {
	if err := badRef(s.Ref); err != nil || s.Ref == "" || repository == "" {
		return err
	}
	m, _, err := e.mirror(repository)
	if err != nil {
		return err
	}
	look, cancel := context.WithTimeout(ctx, refLook)
	defer cancel()
	found, near, err := m.Knows(look, s.Ref)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		e.Log.Warn("the ref of a task could not be looked up; the task is taken and its run will tell", "repository", repository, "ref", s.Ref, "err", err)
		return nil
	case found:
		return nil
	}
	if s.Key != "" { // a task that was made is answered, also when its branch is gone by now
		if _, err := e.Store.TaskByKey(ctx, s.RequesterID, s.Key); err == nil {
			return nil
		}
	}
	unknown := m.UnknownRef(s.Ref, near)
	return &Error{Code: CodeBadRef, Message: unknown.Message, Err: unknown}
}

// badRef refuses what is no name of a branch or a tag.
func badRef(ref string) error {
	err := patch.CheckRef(ref)
	if err == nil {
		return nil
	}
	return &Error{Code: CodeBadRef, Message: err.Error(), Err: err}
}

// Stand is what a delegation's files come from. Exactly one of Branch and Tag is set
// where there is a repository; on a tag nothing can land.
type Stand struct {
	Branch     string `json:"branch,omitempty"`     // where a patch would land
	Tag        string `json:"tag,omitempty"`        // read only
	BaseCommit string `json:"baseCommit,omitempty"` // what the checkout was made from
	BaseTree   string `json:"baseTree,omitempty"`   // the caller's snapshot, or the commit's tree
}

// standOn is a place of the source.
func standOn(s patch.Start) Stand {
	return Stand{Branch: s.Branch, Tag: s.Tag, BaseCommit: s.Commit, BaseTree: s.Tree}
}

// target is what a patch is held against and where it would land. Whatever is recorded
// or put before people asks here first, so that no request is without a target.
func (s Stand) target() (patch.Base, error) {
	switch {
	case s.Tag != "":
		return patch.Base{}, &patch.Refusal{Code: patch.CodeBadRef, Message: "This task works on the tag " + patch.Shown(s.Tag) +
			", which is read only, so its change has nowhere to land. Send the task with a branch."}
	case s.Branch == "" || s.BaseCommit == "" || s.BaseTree == "":
		return patch.Base{}, &patch.Refusal{Code: patch.CodeBadRef, Message: "This task names no branch that its change could land on: it was sent for a commit, as older versions took it. Send a new task with a branch."}
	}
	return patch.Base{Branch: s.Branch, Commit: s.BaseCommit, Tree: s.BaseTree}, nil
}

// refFailure makes what the mirror says of a ref the delegation's failure.
func refFailure(err error) error {
	var ref *patch.RefError
	if errors.As(err, &ref) {
		return agent.Fail(CodeBadRef, "%s", ref.Message)
	}
	return err
}
