// Package maintenance is the protocol by which LCM takes a node out of service and gives it
// back (docs/statements/mosk.md, H38). Maintenance requests ask the applications of the
// workload cluster, which answer with workload locks; an LCMClusterState then demands the
// drain of the node.
//
// A controller that needs the node of a machine without workloads, to upgrade, reboot or
// delete it, calls Service.Enter in each of its reconciles:
//
//	p, err := service.Enter(ctx, maintenance.Request{Machine: key, Reason: lcm.ReasonUpgrade})
//	switch {
//	case err != nil:
//		return ctrl.Result{}, err
//	case !p.Done:
//		return ctrl.Result{RequeueAfter: p.After}, nil // p.Stage and p.Message say what it waits for
//	}
//	// the node is drained, and stays so until Leave
//
// Enter walks through the stages until one is not reached, and returns that stage. It stores
// nothing but objects of the API: after a restart it goes on where it was, and once the node
// is drained it writes nothing. Then the controller does its work, calls Service.Leave for the
// machine in the same way until that is done, and, after its last machine,
// Service.LeaveCluster.
//
// LCMMachine.status.kubernetesCordonDrain shows the progress of a machine, and
// kubernetesCordonDrainError what blocks it: a failed lock with its errorMessage, or the
// reason why pods stay on the node. An active lock blocks without a message.
//
// States, which runs beside the callers, drains and uncordons nodes as LCMClusterStates
// demand. The package does not know which machines are next, or how many at a time.
package maintenance
