// Package workflow is the kind of agent that has a declared plan and no model:
// steps in order, conditions, loops with a limit, parallel branches with a join
// (H25–H27).
//
// A step hands its task to an agent and keeps the answer. Its parts:
//
//   - id: how others refer to it; agent: who does it
//   - task: a text/template over .Task, .Steps.ID.Text (also .Data, .State, .Agent,
//     .Code, .Error, .Runs) and .Artifacts.NAME; without one, the workflow's own task.
//     What has not run has no entry, and reading it is an error; {{with index .Steps
//     "ID"}} asks first. {{json .Steps.ID.Data}} writes JSON
//   - if: an expression (expr-lang) over task, steps.ID.state (text, data, agent, code,
//     error, runs) and artifacts; false skips the step, whose state is then "skipped"
//   - goto with limit: after this step, go to that one, at most limit times in all; a
//     step with goto and no agent is a pure jump. Who is next after a condition with a goto
//     back is told so in its hand-over (judge.go): retry and the reason, or validated
//   - produces: the artifact name under which the answer is kept (H4)
//   - parallel: branches that are handed on together; the next step waits for all
//
// A step that does not complete ends the workflow, unless the "if" of a step further
// down reads its state as steps.ID.state. Where people said no to it, the workflow ends
// rejected and has not failed.
//
// The machine keeps nothing. Every Run plays the plan from its first step against
// the children that exist, and stops at the first that is missing: the same memo and
// children always give the same outcome, so a crash at any point repeats nothing.
// The memo is the plan that the run began with, so that a new configuration does not
// change a workflow in the middle.
//
// The room may import agent, expr and the standard library.
package workflow
