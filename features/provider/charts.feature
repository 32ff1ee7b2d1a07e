Feature: Charts of the lab's repository
  The lab serves a repository of Helm charts: those that come with it, and those of a
  directory of its state. A HelmBundle names the repository, and the charts that the
  controller installs from it.

  Scenario: A chart that comes with the lab is installed
    Given a lab with host OS configuration
    When the operator creates the HelmBundle "lab" with the lab's repository and the releases:
      """
      - {name: day2-settings, chart: lab/settings, version: 1.0.0, values: {logLevel: debug}}
      """
    Then the release "day2-settings" of the HelmBundle "lab" is the chart "settings 1.0.0", and ready
    When the operator runs kubectl get configmap day2-settings -o 'jsonpath={.data}'
    Then kubectl prints {"logLevel":"debug"}

  Scenario: A Deployment that runs nowhere does not make its release ready
    Given a lab with host OS configuration
    When the operator creates the HelmBundle "lab" with the lab's repository and the releases:
      """
      - {name: web, chart: lab/web}
      """
    Then the release "web" of the HelmBundle "lab" is the chart "web 1.0.0", and not ready
    When the operator runs kubectl get deployment,service web -o name
    Then kubectl prints deployment.apps/web service/web

  Scenario: A version that the repository lacks is installed once the directory has it
    Given a lab with host OS configuration
    When the operator creates the HelmBundle "lab" with the lab's repository and the releases:
      """
      - {name: echo, chart: lab/echo, version: 2.1.0}
      - {name: day2-settings, chart: lab/settings, version: 9.9.9}
      """
    Then the release "day2-settings" of the HelmBundle "lab" fails: 'repository lab (URL): chart settings 9.9.9: no chart version found for settings-9.9.9: there are 1.0.0'
    And the release "echo" of the HelmBundle "lab" fails: 'repository lab (URL): chart echo 2.1.0: no chart name found'
    When the operator puts a damaged archive of the chart "broken 1.0.0" in the directory of charts
    And the operator puts the chart "echo 2.1.0" in the directory of charts
    Then the release "echo" of the HelmBundle "lab" is the chart "echo 2.1.0", and ready

  Scenario: The chart of a Helm controller waits where no cluster gives it an account
    Given a lab with host OS configuration
    When the operator creates the HelmBundle "lab" with the lab's repository and the releases:
      """
      - {name: helm-controller, chart: lab/helm-controller}
      """
    Then the release "helm-controller" of the HelmBundle "lab" is the chart "helm-controller 1.2.0", and not ready
    When the operator runs kubectl get deployment,secret,serviceaccount,role,rolebinding -l app.kubernetes.io/name=helm-controller -o name
    Then kubectl prints deployment.apps/helm-controller secret/helm-controller-management serviceaccount/helm-controller role.rbac.authorization.k8s.io/helm-controller role.rbac.authorization.k8s.io/helm-controller-self rolebinding.rbac.authorization.k8s.io/helm-controller rolebinding.rbac.authorization.k8s.io/helm-controller-self
    When the operator runs kubectl get pods -l app.kubernetes.io/instance=helm-controller -o 'jsonpath={.items[*].status.containerStatuses[*].state.waiting.reason}'
    Then kubectl prints CreateContainerConfigError
