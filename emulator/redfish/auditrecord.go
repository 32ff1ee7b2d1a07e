package redfish

import (
	"context"
	"net/http"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// successStatus is the status of a write that succeeds, by its method.
var successStatus = map[string]int{
	http.MethodPost: http.StatusNoContent, http.MethodPatch: http.StatusOK, http.MethodPut: http.StatusOK, http.MethodDelete: http.StatusNoContent,
}

// startAudit begins the audit record of a write. The first change that the write makes
// stores the record with it.
func (x *request) startAudit() {
	status, writes := successStatus[x.r.Method]
	if !writes {
		return
	}
	x.auditContext = &bmc.AuditContext{Record: bmc.AuditRecord{Method: x.r.Method, Target: x.r.URL.Path, Status: status, From: x.clientAddress()}}
}

// context returns the context of the request for the host's methods; that of a write
// carries the audit record.
func (x *request) context() context.Context {
	if x.auditContext == nil {
		return x.r.Context()
	}
	return bmc.WithAudit(x.r.Context(), x.auditContext)
}

// setActor sets the user that sent the request, in the audit record as well.
func (x *request) setActor(actor resource.Actor) {
	x.actor = actor
	if x.auditContext != nil {
		x.auditContext.Record.Account, x.auditContext.Record.User, x.auditContext.Record.Session = actor.Account, actor.User, actor.Session
	}
}

// expectStatus sets the status in the audit record for the case that the write succeeds.
func (x *request) expectStatus(status int) {
	if x.auditContext != nil {
		x.auditContext.Record.Status = status
	}
}

// audit completes the audit log after the response: it adds the record of a write that
// changed nothing, and corrects the status of one whose response differs from the
// expected one. When nothing can be stored, the record cannot be either.
func (x *request) audit() {
	a := x.auditContext
	if a == nil || a.ID != 0 && a.Record.Status == x.status || x.status == http.StatusInsufficientStorage {
		return
	}
	a.Record.Status = x.status
	var c bmc.Command = bmc.AddAuditRecord{AuditRecord: a.Record}
	if a.ID != 0 {
		c = bmc.AmendAuditRecord{ID: a.ID, Status: x.status}
	}
	ctx := context.WithoutCancel(x.r.Context()) // without the audit record: this change is not audited
	if _, err := x.host.ApplyBMC(ctx, c); err != nil {
		x.s.log.Warn("request not audited", "bmc", localAddress(x.r), "method", a.Record.Method, "path", a.Record.Target, "err", err)
	}
}
