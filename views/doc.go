// Package views draws the pages. A view never fetches: each page gets one plain
// struct made for it (OverviewPage, ReviewPage …) that embeds Chrome, and what
// stands in it is ready to print. Parts that change while somebody looks are
// components of their own with a stable id (OverviewBlocks, DelegationLive …), so
// that a handler may answer htmx with only that part.
//
// Everything that an agent, a webhook, a repository or a person typed goes through
// Foreign or Visible: never HTML, and invisible characters are shown as code points.
//
// It may import package static and libraries, and no other room of the house.
package views
