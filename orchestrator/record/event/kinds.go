package event

import "reflect"

// Kind is what there is to know of a type of events. A new type is a constant with its
// struct and sentence, a line in this table, and who appends it. XData is the data of X.
type Kind struct {
	Type  Type
	Icon  string // one character
	empty Payload
	trait
}

type trait uint8

// What a Kind may be besides.
const (
	heard   trait = 1 << iota // of a task: open pages listen, and its list of events offers it
	acted                     // whoever acted stands beside it, and not the agent
	passing                   // shown and never stored
)

func kind[P Payload](of Type, icon string, t trait) Kind {
	var p P
	return Kind{Type: of, Icon: icon, empty: p, trait: t}
}

// The one table of all types.
var kinds = []Kind{
	kind[TaskCreatedData](TaskCreated, "+", heard|acted),
	kind[QueuedData](Queued, "○", heard),
	kind[AcknowledgedData](Acknowledged, "●", heard),
	kind[ProgressData](Progress, "·", heard),
	kind[DelegatedData](Delegated, "→", heard),
	kind[DelegationRefusedData](DelegationRefused, "⊘", heard),
	kind[WaitingData](Waiting, "⧗", heard),
	kind[ResumedData](Resumed, "●", heard),
	kind[CompletedData](Completed, "✓", heard),
	kind[FailedData](Failed, "✕", heard),
	kind[CancelledData](Cancelled, "■", heard|acted),
	kind[MessageCompletedData](MessageCompleted, "·", heard),
	kind[MessageSentData](MessageSent, "✉", heard|acted),
	kind[MessageDeliveredData](MessageDelivered, "✉", heard),
	kind[ToolCalledData](ToolCalled, "·", heard),
	kind[ToolCompletedData](ToolCompleted, "·", heard),
	kind[PlanChangedData](PlanChanged, "≡", heard),
	kind[PausedData](Paused, "‖", heard|acted),
	kind[UnpausedData](Unpaused, "●", heard|acted),
	kind[ForkedData](Forked, "⑂", heard|acted),
	kind[AnnouncedData](Announced, "↑", heard),
	kind[UsageRecordedData](UsageRecorded, "$", heard),
	kind[ContextReadData](ContextRead, "≡", heard),
	kind[ContextDeletedData](ContextDeleted, "≡", heard),
	kind[ContextWrittenData](ContextWritten, "≡", heard),
	kind[RequestedData](Requested, "◆", heard),
	kind[NotifiedData](Notified, "◇", heard),
	kind[DecidedData](Decided, "✓", heard|acted),
	kind[ChangesRequestedData](ChangesRequested, "↩", heard|acted),
	kind[SupersededData](Superseded, "⧉", heard),
	kind[ExpiredData](Expired, "⌛", heard),
	kind[StaleData](Stale, "⧉", heard),
	kind[RemindedData](Reminded, "◇", heard),
	kind[EscalatedData](Escalated, "◇", heard),
	kind[CommentRepliedData](CommentReplied, "✎", heard),
	kind[CommentResolvedData](CommentResolved, "✎", heard),
	kind[CommentReopenedData](CommentReopened, "✎", heard),
	kind[VerdictRefusedData](VerdictRefused, "⊘", heard|acted),
	kind[GrantedData](Granted, "✓", heard|acted),
	kind[GrantUsedData](GrantUsed, "·", heard),
	kind[GrantRevokedData](GrantRevoked, "⊘", heard|acted),
	kind[DeniedData](Denied, "⊘", heard),
	kind[WithdrawnRightData](WithdrawnRight, "◆", heard),
	kind[OvertakenData](Overtaken, "⧉", heard),
	kind[PatchRejectedData](PatchRejected, "⊘", heard),
	kind[PatchValidatedData](PatchValidated, "✓", heard),
	kind[PatchLandedData](PatchLanded, "✓", heard),
	kind[PatchRevertedData](PatchReverted, "⧉", heard),
	kind[BreakerOpenedData](BreakerOpened, "⊘", heard),
	kind[BreakerClosedData](BreakerClosed, "○", heard),

	kind[UserCreatedData](UserCreated, "@", 0),
	kind[UserChangedData](UserChanged, "@", 0),
	kind[SessionCreatedData](SessionCreated, "@", 0),
	kind[SessionEndedData](SessionEnded, "@", 0),
	kind[LinkCreatedData](LinkCreated, "@", 0),
	kind[LinkUsedData](LinkUsed, "@", 0),
	kind[TokenCreatedData](TokenCreated, "@", 0),
	kind[TokenRevokedData](TokenRevoked, "@", 0),
	kind[LinkCodeCreatedData](LinkCodeCreated, "@", 0),
	kind[AccountLinkedData](AccountLinked, "@", 0),
	kind[AccountUnlinkedData](AccountUnlinked, "@", 0),
	kind[ViewSharedData](ViewShared, "@", 0),
	kind[ViewUnsharedData](ViewUnshared, "@", 0),
	kind[ConfigurationChangedData](ConfigurationChanged, "⚙", 0),
	kind[ChannelHealthData](ChannelHealth, "⚙", 0),
	kind[ChannelRetriedData](ChannelRetried, "⚙", 0),
	kind[TriggerRefusedData](TriggerRefused, "⊘", 0),
	kind[TriggerNotStartedData](TriggerNotStarted, "⊘", 0),
	kind[TriggerRedeliveredData](TriggerRedelivered, "+", 0),
	kind[AuditExportedData](AuditExported, "#", 0),
	kind[HistoryVerifiedData](HistoryVerified, "#", 0),
	kind[HoldSetData](HoldSet, "#", 0),
	kind[HoldLiftedData](HoldLifted, "#", 0),
	kind[RetentionAppliedData](RetentionApplied, "#", 0),

	kind[MessageDeltaData](MessageDelta, "·", passing),
	kind[GapData](Gap, "…", passing|heard),
}

// The rows of the table, by the type and by the struct of its data.
var byType, byData = func() (map[Type]Kind, map[reflect.Type]Type) {
	types, data := make(map[Type]Kind, len(kinds)), make(map[reflect.Type]Type, len(kinds))
	for _, k := range kinds {
		types[k.Type], data[reflect.TypeOf(k.empty)] = k, k.Type
	}
	return types, data
}()

// typeOf is the type of events that have such data, or a pointer to it.
func typeOf(p Payload) Type { return byData[reflect.Indirect(reflect.ValueOf(p)).Type()] }

// KindOf looks a type up; false for one of another version of this program.
func KindOf(t Type) (Kind, bool) {
	k, ok := byType[t]
	return k, ok
}

// Types lists every type that the log of a task may have, as filters offer them.
func Types() []Type {
	var all []Type
	for _, k := range kinds {
		if k.trait&(heard|passing) == heard {
			all = append(all, k.Type)
		}
	}
	return all
}

// Stored lists every type that the log may have, as searches offer them.
func Stored() []Type {
	var all []Type
	for _, k := range kinds {
		if k.trait&passing == 0 {
			all = append(all, k.Type)
		}
	}
	return all
}

// Sentence is what an event says, beside its type and who did it.
func Sentence(e Event, w Words) string {
	if p := e.Payload(); p != nil {
		return p.sentence(e, w)
	}
	var d struct{ Message, Text, Title, Why, To, State string }
	Decode(e.Data, &d)
	return first(d.Message, d.Text, d.Title, d.Why, Prefixed("to ", d.To), d.State)
}

// Access is whose access an event of the stream "system" is about, by ids; "" and none where
// it says nothing of that.
func (e Event) Access() (userID string, tokenIDs []string) {
	var d struct {
		UserID        string   `json:"user_id"`
		TokenID       string   `json:"token_id"`
		TokensRevoked []string `json:"tokens_revoked"`
	}
	Decode(e.Data, &d)
	if d.TokenID != "" {
		d.TokensRevoked = append(d.TokensRevoked, d.TokenID)
	}
	return d.UserID, d.TokensRevoked
}

// Agent is the agent that the data names, "" for none.
func (e Event) Agent() string {
	var d struct{ Agent string }
	Decode(e.Data, &d)
	return d.Agent
}

// Turn is the turn of a model that e is about, 0 for none.
func (e Event) Turn() int {
	var d struct{ Turn int }
	Decode(e.Data, &d)
	return d.Turn
}

// ApprovalID is the request that e is about, "" for none.
func (e Event) ApprovalID() string {
	var d About
	Decode(e.Data, &d)
	return d.ApprovalID
}

// Kind is what the request asks that an event is about, "" where that is a patch, or none.
func (e Event) Kind() string {
	var d About
	Decode(e.Data, &d)
	return d.Kind
}

// Code is why something was refused or has failed; "" where e says nothing of the kind.
func (e Event) Code() string {
	switch e.Type {
	case DelegationRefused:
		return Read[DelegationRefusedData](e).Code
	case PatchRejected:
		return Read[PatchRejectedData](e).Code
	case Failed, Cancelled:
		return EndOf(e).Code.V
	}
	return ""
}

// VerdictOf is what was said in a Decided or ChangesRequested.
func VerdictOf(e Event) (v Verdict, startOver bool) {
	switch d := e.Payload().(type) {
	case DecidedData:
		return d.Verdict, false
	case ChangesRequestedData:
		return d.Verdict, d.StartOver
	}
	return Verdict{}, false
}

// EndOf is the end that a Completed, Failed or Cancelled tells.
func EndOf(e Event) End {
	switch d := e.Payload().(type) {
	case CompletedData:
		return d.End
	case FailedData:
		return d.End
	case CancelledData:
		return d.End
	}
	return End{}
}

// ByActor reports whether the person or rule that acted stands beside the event.
func (t Type) ByActor() bool { return byType[t].trait&acted != 0 }

// Ends reports whether a delegation has ended with this.
func (t Type) Ends() bool { return t == Completed || t == Failed || t == Cancelled }

// Heard reports whether open pages renew what shows it. Of what they do not know they do.
func (t Type) Heard() bool {
	k, known := byType[t]
	return !known || k.trait&heard != 0
}
