// Package api answers programs in JSON: the routes of the contract under /api/v1.
//
// One file per resource. input.go reads JSON strictly, query.go reads what stands
// in the address, shape.go has the published shapes. They are goldens in
// testdata, which go test ./handlers/api -rewrite writes anew. Errors are returned; web turns
// them into problem documents. Rights are checked by web's route table before a
// handler runs; what depends on the single row (a run sees its own task) is here.
package api
