# SPDX-License-Identifier: Apache-2.0
export PS1='\w \$ '
