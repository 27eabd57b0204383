// Package figures draws what was counted, as tables of pages and as rows of a file. The
// page of insights and that of a task show it.
//
// It may import views and what views may, and no pages.
package figures
