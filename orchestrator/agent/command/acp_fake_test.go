package command

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/orchestrator/agent"
)

// asACP makes the test binary an agent of the Agent Client Protocol that behaves in one way,
// well or badly. It writes all that it hears into the file acp.log of its checkout.
const asACP = "COMMAND_TEST_ACP"

// acpFake is that agent. It speaks the wire as it is, without the library that is tested.
type acpFake struct {
	mu       sync.Mutex
	out      *os.File
	log      *os.File
	answers  map[string]chan json.RawMessage
	asks     int
	over     chan struct{} // closed by session/cancel
	calmed   sync.Once
	prompts  int
	signedIn bool
}

type acpLine struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

func (f *acpFake) write(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = f.out.WriteString(line + "\n")
}

func (f *acpFake) reply(id json.RawMessage, result string) {
	f.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result))
}

func (f *acpFake) refuse(id json.RawMessage, code int, words string) {
	f.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, id, code, words))
}

func (f *acpFake) update(update string) {
	f.write(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":` + update + `}}`)
}

func (f *acpFake) say(text string) {
	quoted, _ := json.Marshal(text)
	f.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` + string(quoted) + `}}`)
}

// usualOptions are those of Claude: what must never be chosen stands first.
const usualOptions = `[{"optionId":"always","kind":"allow_always","name":"Always"},{"optionId":"once","kind":"allow_once","name":"Once"},{"optionId":"no","kind":"reject_once","name":"No"}]`

// ask asks for a permission and returns the option that was chosen, or "cancelled".
func (f *acpFake) ask(call, options string) string {
	return f.chosen(<-f.asked(call, options))
}

func (f *acpFake) asked(call, options string) chan json.RawMessage {
	f.mu.Lock()
	f.asks++
	id := strconv.Itoa(1000 + f.asks)
	got := make(chan json.RawMessage, 1)
	f.answers[id] = got
	f.mu.Unlock()
	f.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":%s,"options":%s}}`, id, call, options))
	return got
}

func (f *acpFake) chosen(result json.RawMessage) string {
	var r struct {
		Outcome struct{ Outcome, OptionID string }
	}
	_ = json.Unmarshal(result, &r)
	if r.Outcome.Outcome == "selected" {
		return r.Outcome.OptionID
	}
	return r.Outcome.Outcome
}

// serveACP is the agent's life.
func serveACP(behaviour string) int {
	log, err := os.OpenFile("acp.log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 2
	}
	f := &acpFake{out: os.Stdout, log: log, answers: map[string]chan json.RawMessage{}, over: make(chan struct{})}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		text, err := in.ReadString('\n')
		if err != nil {
			if behaviour == "lingers" {
				time.Sleep(time.Hour)
			}
			return 0
		}
		_, _ = log.WriteString(text)
		var m acpLine
		if json.Unmarshal([]byte(text), &m) != nil {
			return 3
		}
		switch m.Method {
		case "":
			f.mu.Lock()
			if got := f.answers[string(m.ID)]; got != nil {
				got <- m.Result
			}
			f.mu.Unlock()
		case "initialize":
			loads := behaviour != "forgets"
			f.reply(m.ID, fmt.Sprintf(`{"protocolVersion":1,"agentInfo":{"name":%q},"agentCapabilities":{"loadSession":%t,"mcpCapabilities":{"http":true}},"authMethods":[{"id":"api-key"}]}`, behaviour, loads))
		case "session/new":
			if behaviour == "not signed in" || behaviour == "takes its key" && !f.signedIn {
				f.refuse(m.ID, -32000, "Authentication required")
				continue
			}
			f.reply(m.ID, `{"sessionId":"s1","modes":{"currentModeId":"auto","availableModes":[{"id":"auto"},{"id":"default"},{"id":"bypassPermissions"}]}}`)
		case "authenticate":
			if behaviour == "not signed in" {
				f.refuse(m.ID, -32603, "no key")
				continue
			}
			f.signedIn = true
			f.reply(m.ID, `{}`)
		case "session/load":
			if behaviour == "loses" {
				f.refuse(m.ID, -32603, "No conversation found")
				continue
			}
			f.say("this was said before")
			f.update(`{"sessionUpdate":"tool_call","toolCallId":"old","title":"old","status":"completed","rawInput":{"a":1}}`)
			f.reply(m.ID, `{"modes":{"currentModeId":"auto","availableModes":[{"id":"auto"},{"id":"default"}]}}`)
		case "session/set_mode":
			if behaviour == "keeps its mode" {
				f.refuse(m.ID, -32602, "no such mode")
				continue
			}
			f.reply(m.ID, `{}`)
		case "session/prompt":
			f.prompts++
			go f.act(behaviour, m)
		case "session/cancel":
			if behaviour != "deaf" {
				f.calmed.Do(func() { close(f.over) })
			}
		default:
			return 4
		}
	}
}

// act is one turn.
func (f *acpFake) act(behaviour string, m acpLine) {
	stop := "end_turn"
	if turn := acpTurns[behaviour]; turn != nil {
		stop = turn(f, string(m.Params))
	} else {
		f.say("done")
	}
	f.reply(m.ID, `{"stopReason":"`+stop+`","usage":{"inputTokens":3,"outputTokens":2,"totalTokens":12}}`)
}

const bash = `{"toolCallId":"c1","title":"git push","kind":"execute","rawInput":{"command":"git push"},"_meta":{"claudeCode":{"toolName":"Bash"}}}`

// acpTurns are what the agent does in a turn, by its behaviour; what it returns is why the turn stopped.
var acpTurns = map[string]func(f *acpFake, prompt string) string{
	"works": func(f *acpFake, _ string) string {
		f.update(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`)
		f.say("I look")
		f.say(" around.")
		f.update(`{"sessionUpdate":"plan","entries":[{"content":"read","priority":"high","status":"in_progress"},{"content":"write","priority":"low","status":"pending"}]}`)
		f.update(`{"sessionUpdate":"plan","entries":[{"content":"read","priority":"high","status":"in_progress"},{"content":"write","priority":"low","status":"pending"}]}`)
		f.update(`{"sessionUpdate":"hologram","shape":{"x":1}}`)
		f.update(`{"sessionUpdate":"available_commands_update","availableCommands":[]}`)
		f.update(`[1,2]`)
		f.write(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"other","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"not mine"}}}}`)
		f.update(`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"Edit","kind":"edit","status":"pending","rawInput":{},"_meta":{"claudeCode":{"toolName":"Edit"}}}`)
		dir, _ := os.Getwd()
		path, _ := json.Marshal(filepath.Join(dir, "a.txt"))
		f.update(`{"sessionUpdate":"tool_call_update","toolCallId":"t1","title":"Edit a.txt","rawInput":{"path":` + string(path) + `},"content":[{"type":"diff","path":` + string(path) + `,"oldText":"one","newText":"two"}]}`)
		f.update(`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"edited"}}]}`)
		f.update(`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}`)
		f.update(`{"sessionUpdate":"usage_update","used":10,"size":100,"cost":{"amount":0.25,"currency":"USD"}}`)
		f.write(`a line of its logger`)
		f.say("All is done.")
		return "end_turn"
	},
	"speaks twice": func(f *acpFake, _ string) string {
		f.say("Warning: no metadata.")
		f.update(`{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"All is "}}`)
		f.update(`{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"done."}}`)
		return "end_turn"
	},
	"asks": func(f *acpFake, prompt string) string {
		f.say("chose " + f.ask(bash, usualOptions) + ";")
		return "end_turn"
	},
	"asks as codex": func(f *acpFake, _ string) string {
		call := `{"toolCallId":"c1","title":"ls","kind":"execute","rawInput":{"command":["ls"]}}`
		f.say("chose " + f.ask(call, `[{"optionId":"approved-for-session","kind":"allow_always","name":"x"},{"optionId":"approved","kind":"allow_once","name":"y"},{"optionId":"cancel","kind":"reject_always","name":"z"}]`))
		return "cancelled"
	},
	"asks for good": func(f *acpFake, _ string) string {
		if f.prompts > 1 {
			return "end_turn"
		}
		f.say("chose " + f.ask(bash, `[{"optionId":"always","kind":"allow_always","name":"Always"}]`))
		return "end_turn"
	},
	"asks early": func(f *acpFake, _ string) string {
		got := f.asked(`{"toolCallId":"c9","title":"deploy_restart","kind":"other","rawInput":{}}`, usualOptions)
		time.Sleep(100 * time.Millisecond)
		f.update(`{"sessionUpdate":"tool_call","toolCallId":"c9","title":"deploy_restart","status":"pending","rawInput":{"host":"web1"}}`)
		f.say("chose " + f.chosen(<-got))
		return "end_turn"
	},
	"asks without words": func(f *acpFake, _ string) string {
		f.say("chose " + f.ask(`{"toolCallId":"c9","title":"deploy_restart","kind":"other","rawInput":{}}`, usualOptions))
		return "end_turn"
	},
	"asks twice under one id": func(f *acpFake, _ string) string {
		outside := `{"toolCallId":"c1","title":"external_directory","kind":"other","rawInput":{"path":"/tmp/x"}}`
		edit := `{"toolCallId":"c1","title":"edit","kind":"edit","rawInput":{"path":"/tmp/x"}}`
		one, two, three := f.asked(outside, usualOptions), f.asked(edit, usualOptions), f.asked(edit, usualOptions)
		f.say("chose " + f.chosen(<-one) + " " + f.chosen(<-two) + " " + f.chosen(<-three))
		return "end_turn"
	},
	"pushes until it may": func(f *acpFake, prompt string) string {
		switch f.prompts {
		case 1:
			f.say("chose " + f.ask(bash, usualOptions))
		default:
			safe := `{"toolCallId":"c2","title":"git push","rawInput":{"command":"git push --dry-run"},"_meta":{"claudeCode":{"toolName":"Bash"}}}`
			f.say("chose " + f.ask(safe, usualOptions) + " " + f.ask(safe, usualOptions))
		}
		return "end_turn"
	},
	"can be read in two ways": func(f *acpFake, _ string) string {
		f.say("chose " + f.ask(`{"toolCallId":"c1","title":"x","kind":"execute","rawInput":{"command":"ls","command":"rm -rf ."}}`, usualOptions))
		return "end_turn"
	},
	"asks too much": func(f *acpFake, _ string) string {
		f.say("chose " + f.ask(`{"toolCallId":"c1","title":"x","kind":"edit","rawInput":{"content":"`+strings.Repeat("y", 300<<10)+`"}}`, usualOptions))
		return "end_turn"
	},
	"tells late what can be read in two ways": func(f *acpFake, _ string) string {
		got := f.asked(`{"toolCallId":"c1","title":"x","kind":"execute","rawInput":{}}`, usualOptions)
		time.Sleep(50 * time.Millisecond)
		f.update(`{"sessionUpdate":"tool_call_update","toolCallId":"c1","rawInput":{"command":"ls","Command":"rm -rf ."}}`)
		f.say("chose " + f.chosen(<-got))
		return "end_turn"
	},
	"waits to be cancelled": func(f *acpFake, _ string) string {
		f.say("begun")
		f.update(`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"sleep","status":"in_progress"}`)
		<-f.over
		return "cancelled"
	},
	"waits for a permission": func(f *acpFake, _ string) string {
		got := f.asked(bash, usualOptions)
		<-f.over
		_ = os.WriteFile("chosen", []byte(f.chosen(<-got)), 0o600)
		return "cancelled"
	},
	"answers after cancel": func(f *acpFake, _ string) string {
		f.say("begun")
		f.update(`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"sleep","status":"in_progress"}`)
		<-f.over
		for range 50 {
			f.say("still talking")
			f.asked(bash, usualOptions)
		}
		return "end_turn"
	},
	"deaf": func(f *acpFake, _ string) string {
		f.say("begun")
		f.update(`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"sleep","status":"in_progress"}`)
		time.Sleep(time.Hour)
		return "end_turn"
	},
	"dies": func(f *acpFake, _ string) string {
		f.say("half")
		fmt.Fprintln(os.Stderr, "out of luck")
		os.Exit(7)
		return ""
	},
	"leaves": func(f *acpFake, _ string) string {
		os.Exit(0)
		return ""
	},
	"huge line": func(f *acpFake, _ string) string {
		f.say(strings.Repeat("x", 20<<20))
		return "end_turn"
	},
	"floods": func(f *acpFake, _ string) string {
		for i := range 20_000 {
			f.update(fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"t%d","title":"x","status":"in_progress"}`, i))
			f.say("y")
		}
		f.update(`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}`)
		f.say("done")
		return "end_turn"
	},
	"asks without end": func(f *acpFake, _ string) string {
		for i := range 10_000 {
			f.asked(fmt.Sprintf(`{"toolCallId":"c%d","title":"x","rawInput":{"n":%d}}`, i, i), usualOptions)
		}
		time.Sleep(time.Hour)
		return "end_turn"
	},
	"talks without end": func(f *acpFake, _ string) string {
		for {
			f.say(strings.Repeat("y", 1000))
		}
	},
	"tells secrets": func(f *acpFake, _ string) string {
		key := os.Getenv("MY_API_KEY")
		f.say("the key is " + key[:10])
		f.say(key[10:] + ", in two pieces")
		f.update(`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"` + key + `","status":"completed","rawInput":{"k":"` + key + `"},"rawOutput":"` + key + `"}`)
		f.ask(`{"toolCallId":"c1","title":"x","rawInput":{"k":"`+key+`"}}`, usualOptions)
		f.say("the key is " + key)
		return "end_turn"
	},
	"stops": func(f *acpFake, _ string) string {
		f.say("half an answer")
		return os.Getenv("STOP")
	},
}

// acpAgent is a job of the fake agent.
func acpAgent(t *testing.T, behaviour string, change ...func(*agent.Job)) agent.Job {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return shell(t, "", append([]func(*agent.Job){func(job *agent.Job) {
		job.Agent.Command, job.Agent.Protocol = []string{self}, agent.ACP
		job.Agent.Env[asACP] = behaviour
	}}, change...)...)
}

// heard are the lines of a method that the agent heard.
func heard(t *testing.T, job agent.Job, method string) []string {
	t.Helper()
	var found []string
	for line := range strings.Lines(mustRead(t, filepath.Join(job.Dir, "acp.log"))) {
		if strings.Contains(line, `"method":"`+method+`"`) {
			found = append(found, line)
		}
	}
	return found
}
