package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"gatehouse/orchestrator/agent"
)

// Artifacts are stored by content, once for each task: retention removes them with it.
const (
	// maxShownArtifact is how long a text may be that stands in the row as well, in bytes.
	maxShownArtifact = 4000
	// maxToldArtifact is how long a text may be that a workflow's templates can use.
	maxToldArtifact = MaxText
)

// content is what of an artifact is written into the store.
type content struct {
	id   string
	data []byte
}

// ArtifactBlob names the content of an artifact in the store.
func ArtifactBlob(taskID, sha string) string { return "artifact:" + taskID + ":" + sha }

// ArtifactURL is where callers get the content of an artifact, from the server's address on.
func ArtifactURL(delegationID, name string) string {
	return "/api/v1/delegations/" + delegationID + "/artifacts/" + url.PathEscape(name)
}

// gather reads the artifacts of a result while the checkout is there. The result that it
// returns names them by content; the contents are stored with it.
func (r *run) gather(ctx context.Context, res *agent.Result) (*agent.Result, error) {
	r.contents = nil
	if len(res.Artifacts) == 0 {
		return res, nil
	}
	if n := len(res.Artifacts); n > agent.MaxArtifacts {
		return nil, agent.Fail(agent.CodeArtifact, "There are %d artifacts; %d is the limit.", n, agent.MaxArtifacts)
	}
	told, sum := *res, 0
	told.Artifacts = nil
	names := map[string]bool{}
	for _, a := range res.Artifacts {
		data, err := r.contentOf(ctx, a)
		if err != nil {
			return nil, err
		}
		if sum += len(data); sum > agent.MaxArtifactSum {
			return nil, agent.Fail(agent.CodeArtifact, "The artifacts have more than %d bytes together, which is the limit. Make them smaller.", agent.MaxArtifactSum)
		}
		name := a.Name
		for n := 2; names[name]; n++ {
			name = fmt.Sprintf("%s (%d)", a.Name, n)
		}
		names[name] = true
		digest := sha256.Sum256(data)
		stored := agent.Artifact{Name: name, MediaType: a.TypeOf(data), SHA256: hex.EncodeToString(digest[:]), Size: int64(len(data)), URL: ArtifactURL(r.id, name)}
		if len(data) <= maxShownArtifact && isText(data) {
			stored.Text = string(data)
		}
		told.Artifacts = append(told.Artifacts, stored)
		r.contents = append(r.contents, content{ArtifactBlob(r.task.ID, stored.SHA256), data})
	}
	return &told, nil
}

// contentOf is the content of one artifact. What an agent passes on of one that worked for it
// has no text and no path: the task has its content.
func (r *run) contentOf(ctx context.Context, a agent.Artifact) ([]byte, error) {
	if a.SHA256 == "" || a.Text != "" {
		return a.Read(r.dir)
	}
	data, err := r.e.Store.Blob(ctx, ArtifactBlob(r.task.ID, a.SHA256))
	if errors.Is(err, ErrNotFound) {
		return nil, agent.Fail(agent.CodeArtifact, "The content of the artifact %q is not stored any more.", a.Name)
	}
	return data, err
}

// putContents stores the contents that the run has gathered.
func (r *run) putContents(ctx context.Context, tx Tx) error {
	for _, c := range r.contents {
		if err := tx.PutBlob(ctx, c.id, "artifact", c.data); err != nil {
			return err
		}
	}
	return nil
}

func isText(data []byte) bool { return utf8.Valid(data) && !strings.ContainsRune(string(data), 0) }

// tellTexts gives a child's text artifacts to a workflow, whose templates use them.
func (e *Engine) tellTexts(ctx context.Context, taskID string, c *agent.Child) error {
	if c.Result == nil || len(c.Result.Artifacts) == 0 {
		return nil
	}
	told := *c.Result
	told.Artifacts = append([]agent.Artifact(nil), told.Artifacts...)
	for i, a := range told.Artifacts {
		if a.SHA256 == "" || a.Text != "" || a.Size > maxToldArtifact {
			continue
		}
		data, err := e.Store.Blob(ctx, ArtifactBlob(taskID, a.SHA256))
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if isText(data) {
			told.Artifacts[i].Text = string(data)
		}
	}
	c.Result = &told
	return nil
}

// Artifact is the content of an artifact of d. Those of older versions are their text.
func (e *Engine) Artifact(ctx context.Context, d Delegation, a agent.Artifact) ([]byte, error) {
	if a.SHA256 == "" {
		return []byte(a.Text), nil
	}
	data, err := e.Store.Blob(ctx, ArtifactBlob(d.TaskID, a.SHA256))
	if errors.Is(err, ErrNotFound) {
		return nil, Errorf(CodeNotFound, "The content of %q is gone: retention removed it.", a.Name)
	}
	return data, err
}

// NamedArtifact finds an artifact of d by its name.
func (d *Delegation) NamedArtifact(name string) (agent.Artifact, error) {
	if d.Result != nil {
		for _, a := range d.Result.Artifacts {
			if a.Name == name {
				return a, nil
			}
		}
	}
	return agent.Artifact{}, Errorf(CodeNotFound, "%s has no artifact %.60q. Its page lists what it has.", d.To, name)
}
