terraform {
  required_version = ">= 1.5"

  required_providers {
    restful = {
      source  = "magodo/restful"
      version = ">= 0.25.0"
    }
  }
}
