package handlers

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"slices"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/views"

	"github.com/labstack/echo/v4"
)

// SendForm fills the choices of the form that makes a task.
func (p *Site) SendForm(form views.SendForm) views.SendForm {
	c := p.Engine.Config()
	form.OptIn = c.Settings.OptIn
	for _, s := range c.Agents.All() {
		if s.Role == agent.CLI {
			continue // a seat that takes no work
		}
		note := ""
		if s.Repository != "" && len(c.Repositories) > 1 {
			note = "works in " + s.Repository
		}
		form.Agents = append(form.Agents, views.Choice{Value: s.Name, Text: s.Name, Note: note})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Repositories)) {
		form.Repositories = append(form.Repositories, views.Choice{Value: name, Text: name})
	}
	form.Agent = cmp.Or(form.Agent, DefaultAgent(c.Agents))
	if spec, ok := c.Agents.Get(form.Agent); ok && spec.Repository != "" {
		form.Repository = "" // it has its own
	} else if _, ok := c.Repositories[form.Repository]; !ok {
		form.Repository = ""
		if len(form.Repositories) == 1 {
			form.Repository = form.Repositories[0].Value
		}
	}
	if form.Key == "" {
		form.Key = "web-" + ErrorID() + ErrorID() // a double click is one task
	}
	return form
}

// SentFiles are the files that came with a form, none where it has no place for them.
func SentFiles(c echo.Context) ([]agent.File, error) {
	form, err := c.MultipartForm()
	if errors.Is(err, http.ErrNotMultipart) {
		return nil, nil
	}
	if err != nil {
		return nil, orchestrator.Errorf(orchestrator.CodeBadRequest, "The form could not be read. Send it again. (%w)", err)
	}
	var files []agent.File
	for _, part := range form.File["files"] {
		data, err := partOf(part)
		if err != nil {
			return nil, fmt.Errorf("read a file of a form: %w", err)
		}
		files = append(files, agent.File{Name: part.Filename, MediaType: part.Header.Get(echo.HeaderContentType), Data: data})
	}
	return files, nil
}

func partOf(part *multipart.FileHeader) ([]byte, error) {
	f, err := part.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return io.ReadAll(f)
}

// RefuseSend puts why a task was not taken into its form: beside the files, where it is about
// them. A page cannot keep files, so whoever chose some is told to do so again.
func RefuseSend(form *views.SendForm, f Fault, files int) {
	form.Key = ""
	if files > 0 {
		form.FilesError = "Choose the files again."
	}
	if f.Code == agent.CodeAttachment || f.Code == agent.CodeAttachmentLimit {
		form.FilesError = f.Message + " " + form.FilesError
		return
	}
	form.Error = f.Message
}

// DefaultAgent is who takes a task that names nobody: the first that plans, else the
// first that hands work on and is given none by others, else the first that others
// give none, else the first that takes work; "" where nobody does.
func DefaultAgent(r *agent.Registry) string {
	if able := r.ByCapability("planning"); len(able) > 0 {
		return able[0].Name
	}
	all := slices.DeleteFunc(slices.Clone(r.All()), func(s agent.Spec) bool { return s.Role == agent.CLI })
	given := map[string]bool{}
	for _, s := range all {
		for _, name := range s.Targets() {
			given[name] = true
		}
	}
	name, rank := "", -1
	for _, s := range all {
		is := 0
		if !given[s.Name] {
			is = 1
			if len(s.Targets()) > 0 {
				is = 2
			}
		}
		if is > rank {
			name, rank = s.Name, is
		}
	}
	return name
}
