// Package telemetry makes OpenTelemetry traces of the event log: a trace for each task, a span
// for each delegation, each call of a model and of a tool, and each refused hand-over.
//
// A Follower reads the order over all tasks behind the engine, on one node, with a durable
// cursor: the engine never waits for it, and what a collector missed is sent when it is back,
// at least once. Ids follow from those of the task and its events, so a span that is sent
// twice is the same span.
//
// It is configured as the standard says: OTEL_EXPORTER_OTLP_ENDPOINT (or …_TRACES_ENDPOINT)
// switches it on, OTEL_SDK_DISABLED off. Names are those of the GenAI conventions up to 1.36;
// OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental gives the newer ones. Texts of
// messages are sent only where the configuration says so. Sampling is the collector's.
//
// The room imports the standard library, the SDK, ulid and package event; no other room
// imports the SDK.
package telemetry
