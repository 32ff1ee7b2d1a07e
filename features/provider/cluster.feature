Feature: Load balancer, credential and stages of a cluster
  Beside the Machines of a Cluster, the provider makes its load balancer and checks its
  credential. It reports both in the Cluster's conditions, and the stages of the deployment in
  the ClusterDeploymentStatus.

  Scenario: The load balancer reaches a control machine that is Ready
    Given this machine has "user namespaces"
    And a lab with host OS configuration and 1 server
    And a cluster without machines
    When the cluster has a load balancer
    Then the cluster reports LoadBalancer: 'no Machine with the label cluster.sigs.k8s.io/control-plane is Ready'
    And nothing answers at the load balancer
    And the stages of the cluster are:
      """
      Network prepared: InProgress
      Load balancers created: NotStarted
      IAM objects created: Success
      Helm-controller deployed: Success
      HelmBundle created: Success
      All machines of the cluster are ready: NotStarted
      Cluster is ready: NotStarted
      """
    When the operator adds the control machine "c-0" to the cluster
    Then the condition LoadBalancer of the cluster is ready
    And the Kubernetes API answers at the load balancer
    And the stages of the cluster are:
      """
      Network prepared: Success
      Load balancers created: Success
      IAM objects created: Success
      Helm-controller deployed: Success
      HelmBundle created: Success
      All machines of the cluster are ready: Success
      Cluster is ready: Success
      """
    When the operator switches off the server of "c-0"
    Then nothing answers at the load balancer
    When the operator switches on the server of "c-0"
    Then the Kubernetes API answers at the load balancer
    When the operator deletes the cluster
    Then nothing answers at the load balancer

  Scenario: A credential that is missing stops network and load balancer
    Given a lab with host OS configuration and 1 server
    And a cluster whose servers get addresses of "10.77.0.10-10.77.0.10"
    And the cluster names the credential "account"
    And the cluster has a load balancer
    When the operator adds the machine "w-0" for the server
    And the operator adds the server to the inventory without its credential
    Then the cluster reports Credentials: 'there is no BareMetalHostCredential "account"'
    And the cluster reports LoadBalancer: 'it waits for the BareMetalHostCredential "account"'
    And the machine "w-0" waits: 'there is no BareMetalHostCredential "account"'
    And nothing answers at the load balancer
    And no address is allocated
    When the operator creates the credential
    Then the condition Credentials of the cluster is ready
    And the host becomes "provisioned"
    And the Subnet has 0 of 1 addresses left
    And the cluster reports LoadBalancer: 'no Machine with the label'

  Scenario: A credential that no server accepts stops network and load balancer
    Given a lab with host OS configuration and 1 server
    And a cluster whose servers get addresses of "10.77.0.10-10.77.0.10"
    And the cluster names the credential "account"
    And the cluster has a load balancer
    When the operator adds the machine "w-0" for the server
    And the operator adds the server to the inventory with a wrong password
    Then the cluster reports Credentials: 'BareMetalHostInventory'
    And the machine "w-0" waits: 'BareMetalHostCredential "account"'
    And nothing answers at the load balancer
    And no address is allocated
    When the operator corrects the password of the credential
    Then the condition Credentials of the cluster is ready
    And the host becomes "provisioned"
    And the Subnet has 0 of 1 addresses left
