package redfish

import (
	"context"
	"net/http"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// usual is the status of a request when all goes well.
var usual = map[string]int{
	http.MethodPost: http.StatusNoContent, http.MethodPatch: http.StatusOK, http.MethodPut: http.StatusOK, http.MethodDelete: http.StatusNoContent,
}

// startAudit begins the trail of a request that can change something.
func (x *request) startAudit() {
	status, writes := usual[x.r.Method]
	if !writes {
		return
	}
	x.auditContext = &bmc.AuditContext{Record: bmc.AuditRecord{Method: x.r.Method, Target: x.r.URL.Path, Status: status, From: x.from()}}
}

// context is that of the request, for what carries it out.
func (x *request) context() context.Context {
	if x.auditContext == nil {
		return x.r.Context()
	}
	return bmc.WithAudit(x.r.Context(), x.auditContext)
}

// signIn says who the request is of.
func (x *request) signIn(who resource.Actor) {
	x.actor = who
	if x.auditContext != nil {
		x.auditContext.Record.Account, x.auditContext.Record.User, x.auditContext.Record.Session = who.Account, who.User, who.Session
	}
}

// expectStatus says how the request will be answered if all goes well.
func (x *request) expectStatus(status int) {
	if x.auditContext != nil {
		x.auditContext.Record.Status = status
	}
}

// audit completes the trail: a request that changed nothing is told too, and
// one that was answered otherwise than expected is put right.
func (x *request) audit() {
	t := x.auditContext
	if t == nil || t.ID != 0 && t.Record.Status == x.status {
		return
	}
	t.Record.Status = x.status
	var c bmc.Command = bmc.AddAuditRecord{AuditRecord: t.Record}
	if t.ID != 0 {
		c = bmc.AmendAuditRecord{ID: t.ID, Status: x.status}
	}
	ctx := context.WithoutCancel(x.r.Context()) // which leaves no trail
	if _, err := x.host.ApplyBMC(ctx, c); err != nil {
		x.s.log.Warn("request not audited", "bmc", local(x.r), "method", t.Record.Method, "path", t.Record.Target, "err", err)
	}
}
