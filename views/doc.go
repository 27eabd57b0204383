// Package views has what all pages are made of: the layout with its bar, the parts that
// repeat on them, states and codes in words, and addresses. The pages stand in the rooms
// below, one for each subject; diff and figures draw what several of them show.
//
// A page is a templ file; make generate writes the Go beside it. A view never fetches. Each page gets one plain struct made for it (overview.OverviewPage,
// review.ReviewPage …) that embeds Chrome, and what stands in it is ready to print. Parts
// that change while somebody looks are components of their own with a stable id
// (overview.OverviewBlocks, task.DelegationLive …), so that a handler may answer htmx with
// only that part.
//
// Everything that an agent, a webhook, a repository or a person typed goes through
// Foreign or Visible: never HTML, and invisible characters are shown as code points.
//
// It may import static, values of the domain and of the gate, and libraries. Pages import
// views and its parts; nothing here imports a page, and no page another subject's.
package views
