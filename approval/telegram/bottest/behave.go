package bottest

import (
	"net/http"
	"strings"
)

// Behaviour is one way in which a call goes wrong. It is used up by one call.
type Behaviour struct {
	do     func(s *Server, w http.ResponseWriter, r *http.Request)
	after  bool
	always bool
}

// After makes a behaviour come after the call was carried out: the message is sent and
// whoever sent it does not learn that.
func (b Behaviour) After() Behaviour { b.after = true; return b }

// Always makes a behaviour stay until the method is told to Behave.
func (b Behaviour) Always() Behaviour { b.always = true; return b }

// Misbehave makes the next calls of a method go wrong, each in the next of these ways.
func (s *Server) Misbehave(method string, how ...Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behave[method] = append(s.behave[method], how...)
}

// Behave ends every misbehaviour of a method.
func (s *Server) Behave(method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.behave, method)
}

// misbehaviour takes the next one of a method. s.mu is held.
func (s *Server) misbehaviour(method string) *Behaviour {
	rest := s.behave[method]
	if len(rest) == 0 {
		return nil
	}
	if !rest[0].always {
		s.behave[method] = rest[1:]
	}
	return &rest[0]
}

// Refuse answers with an error of the Bot API.
func Refuse(code int, description string) Behaviour {
	return refuse(&refusal{code: code, text: description})
}

func refuse(r *refusal) Behaviour {
	return Behaviour{do: func(_ *Server, w http.ResponseWriter, _ *http.Request) { reply(w, nil, r) }}
}

// TooMany asks to be left alone for that many seconds.
func TooMany(retryAfter int) Behaviour {
	return refuse(&refusal{code: http.StatusTooManyRequests, text: "Too Many Requests: retry later", retryAfter: retryAfter})
}

// Migrated says that the group has become another chat.
func Migrated(to int64) Behaviour {
	return refuse(&refusal{code: http.StatusBadRequest, text: "Bad Request: group chat was upgraded to a supergroup chat", migrateTo: to})
}

// Blocked is what a bot hears from a person who wants no more of it.
func Blocked() Behaviour {
	return Refuse(http.StatusForbidden, "Forbidden: bot was blocked by the user")
}

// TooLong is what a bot hears that did not count in UTF-16 units.
func TooLong() Behaviour { return Refuse(http.StatusBadRequest, "Bad Request: message is too long") }

// NotModified is what a bot hears that edits a message into what it is.
func NotModified() Behaviour { return Refuse(http.StatusBadRequest, notModified) }

// Conflict409 is what a bot hears whose updates somebody else has asked for.
func Conflict409() Behaviour { return Refuse(http.StatusConflict, otherPoller) }

// ServerError is a web server whose Bot API is away.
func ServerError() Behaviour {
	return Behaviour{do: func(_ *Server, w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<html><h1>502 Bad Gateway</h1></html>", http.StatusBadGateway)
	}}
}

// BrokenJSON is an answer that ends too early.
func BrokenJSON() Behaviour {
	return Behaviour{do: func(_ *Server, w http.ResponseWriter, _ *http.Request) {
		_, _ = strings.NewReader(`{"ok":true,"result":{"message_id":1`).WriteTo(w)
	}}
}

// Says answers with a body.
func Says(body string) Behaviour {
	return Behaviour{do: func(_ *Server, w http.ResponseWriter, _ *http.Request) { _, _ = strings.NewReader(body).WriteTo(w) }}
}

// Hang never answers.
func Hang() Behaviour {
	return Behaviour{do: func(s *Server, w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-s.closing:
		}
		cut(w)
	}}
}

// CutConnection ends the connection without an answer.
func CutConnection() Behaviour {
	return Behaviour{do: func(_ *Server, w http.ResponseWriter, _ *http.Request) { cut(w) }}
}
